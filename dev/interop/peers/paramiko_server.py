"""paramiko as a server: PORT HOST_KEY AUTHORIZED_KEYS; runs commands through sh, and sftp."""

import socket
import subprocess
import sys
import threading

import paramiko
from paramiko_files import Files

CHUNK = 65536


def admitted(path):
    with open(path) as lines:
        return {line.split()[1] for line in lines if line.strip()}


class Session(paramiko.ServerInterface):
    def __init__(self, keys):
        self.keys = keys

    def get_allowed_auths(self, username):
        return "publickey"

    def check_auth_publickey(self, username, key):
        known = key.get_base64() in self.keys
        return paramiko.AUTH_SUCCESSFUL if known else paramiko.AUTH_FAILED

    def check_channel_request(self, kind, chanid):
        refused = paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        return paramiko.OPEN_SUCCEEDED if kind == "session" else refused

    def check_channel_exec_request(self, channel, command):
        threading.Thread(target=serve, args=(channel, command), daemon=True).start()
        return True


def feed(channel, stdin):
    try:
        while chunk := channel.recv(CHUNK):
            stdin.write(chunk)
            stdin.flush()
        stdin.close()
    except OSError:
        pass  # the command does not read to the end


def take(reader, send):
    try:
        while chunk := reader.read1(CHUNK):
            send(chunk)
    except OSError:
        pass  # the client has gone


def serve(channel, command):
    pipe = subprocess.PIPE
    child = subprocess.Popen(["sh", "-c", command], stdin=pipe, stdout=pipe, stderr=pipe)
    threading.Thread(target=feed, args=(channel, child.stdin), daemon=True).start()
    complaints = threading.Thread(target=take, args=(child.stderr, channel.sendall_stderr))
    complaints.start()
    take(child.stdout, channel.sendall)
    complaints.join()
    child.stdout.close()
    status = child.wait()
    channel.send_exit_status(status if status >= 0 else 128 - status)
    channel.close()


def main():
    port, host_key, authorized_keys = sys.argv[1:]
    keys = admitted(authorized_keys)
    host_key = paramiko.Ed25519Key(filename=host_key)
    listener = socket.create_server(("127.0.0.1", int(port)))
    while True:
        connection, _ = listener.accept()
        transport = paramiko.Transport(connection)
        transport.add_server_key(host_key)
        transport.set_subsystem_handler("sftp", paramiko.SFTPServer, Files)
        try:
            transport.start_server(threading.Event(), Session(keys))
        except paramiko.SSHException:
            pass  # a probe that came to see whether we listen


main()
