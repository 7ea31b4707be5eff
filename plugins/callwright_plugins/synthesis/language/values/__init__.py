"""Values in words and back: tokens, days and numbers, ids and names, references, and the places that they stand in."""
