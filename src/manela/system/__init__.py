"""The operating system: files, arrays on disk, threads, memory, signals, progress and a web server on this machine.

Everything here would serve any program. Nothing here knows networks, vectors or hosts, and no module imports a
package of manela but `errors`.
"""
