"""What a request reaches, within which limits, and what the looks prove.

Pure but for the looks that it is handed. Imports no adapter, no ledger and no manifest file.
"""
