"""What the documentation site needs beside its pages: links into the source, the reference, fields of values."""
