"""The command line ``kgrag``: the same assets as in the browser, without one."""
