"""What is measured on runs, how it is read and compared."""
