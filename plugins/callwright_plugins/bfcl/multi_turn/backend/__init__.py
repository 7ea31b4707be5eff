"""What runs in the process of BFCL's classes. The folder stands alone, as it is put on the path of that process."""
