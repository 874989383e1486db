"""The operating system: files, arrays on disk, downloads, threads, memory, signals, progress and a local web server.

Everything here would serve any program. Nothing here knows networks, vectors or hosts, and no module imports a room of
manela; errors are from `manela.errors`.
"""
