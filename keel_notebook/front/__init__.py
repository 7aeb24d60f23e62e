"""What people touch: magics, tables, the command line."""
