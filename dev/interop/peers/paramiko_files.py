"""The SFTP side of paramiko_server.py: the host's files, as they are."""

import os

import paramiko
from paramiko import SFTPAttributes, SFTPHandle, SFTPServer, SFTPServerInterface


def answered(action):
    """An OSError as the status that the client is told."""

    def wrapped(*arguments):
        try:
            return action(*arguments)
        except OSError as error:
            return SFTPServer.convert_errno(error.errno)

    return wrapped


class OpenFile(SFTPHandle):
    def stat(self):
        return SFTPAttributes.from_stat(os.fstat(self.readfile.fileno()))

    def chattr(self, attr):
        SFTPServer.set_file_attr(self.filename, attr)
        return paramiko.SFTP_OK


class Files(SFTPServerInterface):
    def canonicalize(self, path):
        return os.path.realpath(path)

    @answered
    def list_folder(self, path):
        entries = []
        for entry in os.scandir(path):
            attributes = SFTPAttributes.from_stat(entry.stat(follow_symlinks=False))
            attributes.filename = entry.name
            entries.append(attributes)
        return entries

    @answered
    def stat(self, path):
        return SFTPAttributes.from_stat(os.stat(path))

    @answered
    def lstat(self, path):
        return SFTPAttributes.from_stat(os.lstat(path))

    @answered
    def open(self, path, flags, attr):
        mode = attr.st_mode if attr.st_mode is not None else 0o666
        file = os.fdopen(os.open(path, flags, mode), "r+b" if flags & os.O_ACCMODE else "rb", 0)
        handle = OpenFile(flags)
        handle.filename, handle.readfile, handle.writefile = path, file, file
        return handle

    @answered
    def remove(self, path):
        os.remove(path)
        return paramiko.SFTP_OK

    @answered
    def rename(self, old, new):
        if os.path.lexists(new):
            return paramiko.SFTP_FAILURE
        os.rename(old, new)
        return paramiko.SFTP_OK

    @answered
    def posix_rename(self, old, new):
        os.rename(old, new)
        return paramiko.SFTP_OK

    @answered
    def mkdir(self, path, attr):
        os.mkdir(path)
        SFTPServer.set_file_attr(path, attr)
        return paramiko.SFTP_OK

    @answered
    def rmdir(self, path):
        os.rmdir(path)
        return paramiko.SFTP_OK

    @answered
    def chattr(self, path, attr):
        SFTPServer.set_file_attr(path, attr)
        return paramiko.SFTP_OK

    @answered
    def symlink(self, target, path):
        os.symlink(target, path)
        return paramiko.SFTP_OK

    @answered
    def readlink(self, path):
        return os.readlink(path)
