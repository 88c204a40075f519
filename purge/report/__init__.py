"""Saying what a run found and proved: JSON, text for a terminal, Markdown.

Reads outcomes only. Asks no site, opens no ledger, and decides nothing.
"""
