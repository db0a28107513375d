"""What epcheck is compared with, and the file format in which all get the cases. Its scripts do without epcheck."""
