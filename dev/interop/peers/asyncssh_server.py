"""asyncssh as a server: PORT HOST_KEY AUTHORIZED_KEYS; runs commands through sh, and sftp."""

import asyncio
import sys

import asyncssh

CHUNK = 65536


async def feed(process, stdin):
    try:
        while chunk := await process.stdin.read(CHUNK):
            stdin.write(chunk)
            await stdin.drain()
        stdin.close()
    except (BrokenPipeError, ConnectionError, asyncssh.BreakReceived):
        pass  # the command does not read to the end


async def take(reader, out):
    while chunk := await reader.read(CHUNK):
        out.write(chunk)
        await out.drain()


async def session(process):
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        "sh", "-c", process.command, stdin=pipe, stdout=pipe, stderr=pipe
    )
    feeding = asyncio.create_task(feed(process, child.stdin))
    try:
        await asyncio.gather(
            take(child.stdout, process.stdout), take(child.stderr, process.stderr)
        )
        status = await child.wait()
    except (BrokenPipeError, ConnectionError):
        child.kill()
        status = 255
    feeding.cancel()
    process.exit(status if status >= 0 else 128 - status)


async def main():
    port, host_key, authorized_keys = sys.argv[1:]
    server = await asyncssh.listen(
        "127.0.0.1", int(port), server_host_keys=[host_key], process_factory=session,
        authorized_client_keys=authorized_keys, encoding=None, config=None,
        sftp_factory=True,
    )
    await server.wait_closed()


asyncio.run(main())
