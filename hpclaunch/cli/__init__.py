"""The command line: one file a command, options in, printing out."""
