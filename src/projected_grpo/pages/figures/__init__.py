"""The figures of pages, each from numbers that a page already has.

They are as wide as a telephone's screen, and grey tells their marks apart as well as colour does.
"""
