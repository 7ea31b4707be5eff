"""Teachers: models and scripts that plan, speak and judge, and the cache around any of them."""
