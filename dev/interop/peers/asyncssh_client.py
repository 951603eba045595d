"""asyncssh as a client: PORT KEY KNOWN_HOSTS [-C] USER COMMAND, streams and status as ssh's."""

import asyncio
import os
import sys

import asyncssh

CHUNK = 65536


async def feed(process):
    """stdin to the command, then end of file."""
    loop = asyncio.get_running_loop()
    try:
        while chunk := await loop.run_in_executor(None, sys.stdin.buffer.read1, CHUNK):
            process.stdin.write(chunk)
            await process.stdin.drain()
        process.stdin.write_eof()
    except (BrokenPipeError, ConnectionError):
        pass  # the command does not read to the end


async def take(reader, out):
    while chunk := await reader.read(CHUNK):
        out.buffer.write(chunk)
        out.buffer.flush()


async def main():
    port, key, known_hosts, *options, user, command = sys.argv[1:]
    async with asyncssh.connect(
        "127.0.0.1", int(port), username=user, client_keys=[key], known_hosts=known_hosts,
        config=None, agent_path=None,
        compression_algs="zlib@openssh.com,none" if "-C" in options else (),
    ) as connection:
        process = await connection.create_process(command, encoding=None)
        feeding = asyncio.create_task(feed(process))
        await asyncio.gather(take(process.stdout, sys.stdout), take(process.stderr, sys.stderr))
        await process.wait_closed()
        feeding.cancel()
        return 255 if process.exit_signal else process.exit_status


if __name__ == "__main__":
    status = asyncio.new_event_loop().run_until_complete(main())
    sys.stdout.flush()
    os._exit(status)  # a thread may still wait for an open stdin
