"""asyncssh as a client: asyncssh.py PORT KNOWN exec|pty COMMAND, or put|get FROM TO."""
import asyncio
import sys

sys.path = [p for p in sys.path if not p.endswith("testdata")]  # this file has the module's name
import asyncssh


async def main(port, known, verb, args):
    async with asyncssh.connect("127.0.0.1", port, known_hosts=known, username="u", client_keys=None) as conn:
        if verb in ("put", "get"):
            async with conn.start_sftp_client() as sftp:
                await getattr(sftp, verb)(args[0], args[1])
            return 0
        options = {"term_type": "xterm"} if verb == "pty" else {"input": sys.stdin.read()}
        r = await conn.run(" ".join(args), **options)
        # Lines of a terminal end with a carriage return, which print must not change.
        sys.stdout.buffer.write(r.stdout.encode())
        sys.stderr.buffer.write(r.stderr.encode())
        return r.exit_status


sys.exit(asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:])))
