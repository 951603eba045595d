"""paramiko as a client: PORT KEY KNOWN_HOSTS [-C] USER COMMAND, streams and status as ssh's."""

import os
import sys
import threading

import paramiko

CHUNK = 65536


def feed(channel):
    """stdin to the command, then end of file."""
    try:
        while chunk := sys.stdin.buffer.read1(CHUNK):
            channel.sendall(chunk)
        channel.shutdown_write()
    except OSError:
        pass  # the command does not read to the end


def take(receive, out):
    while chunk := receive(CHUNK):
        out.buffer.write(chunk)
        out.buffer.flush()


def main():
    port, key, known_hosts, *options, user, command = sys.argv[1:]
    client = paramiko.SSHClient()
    client.load_host_keys(known_hosts)
    client.connect(
        "127.0.0.1", int(port), user, key_filename=key, allow_agent=False, look_for_keys=False,
        compress="-C" in options,
    )
    channel = client.get_transport().open_session()
    channel.exec_command(command)
    threading.Thread(target=feed, args=(channel,), daemon=True).start()
    complaints = threading.Thread(target=take, args=(channel.recv_stderr, sys.stderr))
    complaints.start()
    take(channel.recv, sys.stdout)
    complaints.join()
    status = channel.recv_exit_status()
    sys.stdout.flush()
    os._exit(status if status >= 0 else 255)  # a thread may still wait for an open stdin


main()
