"""asyncssh as an SFTP client: PORT KEY KNOWN_HOSTS USER LOCAL REMOTE. Takes the tree LOCAL to REMOTE,
asks the server for what else it can do, and brings it back to LOCAL.back."""

import asyncio
import sys

import asyncssh


async def work(sftp, local, remote):
    await sftp.put(local, remote, recurse=True, preserve=True)
    names = await sftp.listdir(remote)
    assert "sub dir" in names and "large" in names, names

    def at(name):
        return f"{remote}/{name}"

    async with sftp.open(at("new"), "wb") as file:
        await file.write(b"0123456789")
        await file.seek(2)
        await file.write(b"xy")
        await file.truncate(8)
    async with sftp.open(at("new"), "rb") as file:
        assert await file.read() == b"01xy4567"
    await sftp.chmod(at("new"), 0o640)
    assert (await sftp.stat(at("new"))).permissions & 0o777 == 0o640
    await sftp.posix_rename(at("new"), at("newer"))
    # On the wire in the draft's order to any server whose name is not OpenSSH.
    await sftp.symlink("newer", at("soft"))
    assert await sftp.readlink(at("soft")) == "newer"
    await sftp.link(at("newer"), at("hard"))
    assert (await sftp.lstat(at("soft"))).permissions & 0o170000 == 0o120000
    assert await sftp.realpath(remote + "/sub dir/..") == await sftp.realpath(remote)
    assert (await sftp.statvfs(remote)).blocks > 0
    assert not await sftp.exists(at("nothing"))
    for name in ("newer", "soft", "hard"):
        await sftp.remove(at(name))
    await sftp.mkdir(at("empty dir"))
    await sftp.rmdir(at("empty dir"))
    assert sorted(await sftp.glob(at("*/sm*"))) == [at("sub dir/small")]
    await sftp.get(remote, local + ".back", recurse=True)


async def main():
    port, key, known_hosts, user, local, remote = sys.argv[1:]
    async with asyncssh.connect(
        "127.0.0.1", int(port), username=user, client_keys=[key], known_hosts=known_hosts,
        config=None,
    ) as connection:
        async with connection.start_sftp_client() as sftp:
            await work(sftp, local, remote)


asyncio.run(main())
