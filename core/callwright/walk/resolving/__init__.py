"""What the references in a program's calls stand for."""
