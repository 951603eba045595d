"""paramiko as an SFTP client: PORT KEY KNOWN_HOSTS USER LOCAL REMOTE. Takes the files of LOCAL to
REMOTE, asks the server for what else it can do, and brings them back to LOCAL.back."""

import os
import stat
import sys

import paramiko


def files(top):
    for directory, _, names in os.walk(top):
        for name in names:
            yield os.path.relpath(os.path.join(directory, name), top)


def take(sftp, local, remote):
    sftp.mkdir(remote)
    for directory, names, _ in os.walk(local):
        for name in names:
            sftp.mkdir(f"{remote}/{os.path.relpath(os.path.join(directory, name), local)}")
    for name in files(local):
        sftp.put(f"{local}/{name}", f"{remote}/{name}")


def work(sftp, remote):
    def at(name):
        return f"{remote}/{name}"

    with sftp.open(at("new"), "w") as file:
        file.set_pipelined(True)
        for part in range(100):
            file.write(b"%09d\n" % part)
        file.truncate(500)
    with sftp.open(at("new")) as file:
        file.prefetch()
        assert file.read() == b"".join(b"%09d\n" % part for part in range(50))
        assert [bytes(b) for b in file.readv([(0, 10), (100, 10)])] == [b"000000000\n", b"000000010\n"]
    sftp.chmod(at("new"), 0o640)
    sftp.utime(at("new"), (1, 2))
    found = sftp.stat(at("new"))
    assert stat.S_IMODE(found.st_mode) == 0o640 and found.st_mtime == 2
    sftp.posix_rename(at("new"), at("newer"))
    sftp.symlink("newer", at("soft"))
    assert sftp.readlink(at("soft")) == "newer"
    assert stat.S_ISLNK(sftp.lstat(at("soft")).st_mode)
    try:
        sftp.stat(at("nothing"))
        raise AssertionError("nothing is there")
    except FileNotFoundError:
        pass
    try:
        sftp.rmdir(at("sub dir"))
        raise AssertionError("a full directory is gone")
    except OSError:
        pass
    sftp.remove(at("newer"))
    sftp.remove(at("soft"))


def main():
    port, key, known_hosts, user, local, remote = sys.argv[1:]
    client = paramiko.SSHClient()
    client.load_host_keys(known_hosts)
    client.connect(
        "127.0.0.1", int(port), user, key_filename=key, allow_agent=False, look_for_keys=False,
    )
    sftp = client.open_sftp()
    take(sftp, local, remote)
    work(sftp, remote)
    for name in files(local):
        target = f"{local}.back/{name}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        sftp.get(f"{remote}/{name}", target)
    client.close()


main()
