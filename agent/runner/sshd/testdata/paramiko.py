"""paramiko as a client: paramiko.py PORT KNOWN exec|pty COMMAND, or put|get FROM TO."""
import sys

sys.path = [p for p in sys.path if not p.endswith("testdata")]  # this file has the module's name
import paramiko

port, known, verb, args = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
transport = paramiko.Transport(("127.0.0.1", port))
transport.start_client()
entry = paramiko.HostKeys(known).lookup("[127.0.0.1]:%d" % port)
key = transport.get_remote_server_key()
assert entry[key.get_name()] == key, "another host key"
transport.auth_none("u")
if verb in ("put", "get"):
    sftp = paramiko.SFTPClient.from_transport(transport)
    getattr(sftp, verb)(args[0], args[1])
    code = 0
else:
    channel = transport.open_session()
    if verb == "pty":
        channel.get_pty()
    channel.exec_command(" ".join(args))
    if verb == "exec":
        channel.sendall(sys.stdin.buffer.read())
        channel.shutdown_write()
    sys.stdout.buffer.write(channel.makefile("rb").read())
    sys.stderr.buffer.write(channel.makefile_stderr("rb").read())
    code = channel.recv_exit_status()
transport.close()
sys.exit(code)
