"""Small programs that run on nodes or under other interpreters. Each is a single file."""
