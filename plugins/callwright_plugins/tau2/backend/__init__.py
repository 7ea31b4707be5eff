"""What runs in the process of tau2's code. The folder stands alone, as it is put on the path of that process."""
