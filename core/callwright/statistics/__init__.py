"""Estimators and their intervals: of means, of shares whose tasks come in families, of samples, of paired differences.

Plain numbers in, plain numbers out; nothing here knows what a task is. May import: the standard library.
"""
