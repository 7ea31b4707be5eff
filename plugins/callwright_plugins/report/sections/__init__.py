"""The sections of a report, a module each: what is read of a folder goes in, HTML comes out."""
