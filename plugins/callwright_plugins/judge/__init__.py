"""A judge: a model that scores attempts by a rubric, as a reward component."""
