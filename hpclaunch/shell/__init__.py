"""Shell text as data: commands, words, variables, with their lines. Pure: nothing is run."""
