"""From request, profile and topology to the plan and its text. Pure: data in, data out."""
