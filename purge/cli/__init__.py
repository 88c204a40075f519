"""The command line: flags to plain values, one call, print, exit code. One file a command.

Command modules import nothing heavy at the top, so that ``purge --help`` stays quick.
"""
