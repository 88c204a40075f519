"""The built-in adapters, one module each. Modules that start with ``_`` are shared helpers.

An adapter imports the standard library, its own driver (inside functions) and the contract:
``purge.adapter``, ``purge.targets``, ``purge.matching``, ``purge.errors``. Adapters do not import
each other.
"""
