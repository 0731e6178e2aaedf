// Microsoft's client of development tunnels: devtunnels.mjs PORT KNOWN SESSION TOKEN COMMAND...
import { connect } from 'node:net'
import { readFileSync } from 'node:fs'
import ssh from '@microsoft/dev-tunnels-ssh'

const [port, known, username, password, ...args] = process.argv.slice(2)
const keys = readFileSync(known, 'utf8').trim().split('\n').map((line) => line.split(' ').at(-1))
const stdin = readFileSync(0)

const socket = connect(Number(port), '127.0.0.1')
await new Promise((done) => socket.once('connect', done))
const session = new ssh.SshClientSession(new ssh.SshSessionConfiguration(true))
session.onAuthenticating((e) => {
  e.authenticationPromise = e.publicKey.getPublicKeyBytes().then((b) => (keys.includes(b.toString('base64')) ? {} : null))
})
await session.connect(new ssh.NodeStream(socket))
if (!(await session.authenticate({ username, password }))) throw new Error('not authenticated')

const channel = await session.openChannel()
let ended
const closed = new Promise((done) => (ended = done))
channel.onDataReceived((data) => {
  process.stdout.write(data)
  channel.adjustWindow(data.length)
})
channel.onExtendedDataReceived((e) => {
  process.stderr.write(e.data)
  channel.adjustWindow(e.data.length)
})
channel.onClosed(ended)
const request = new ssh.CommandRequestMessage()
request.command = args.join(' ')
request.wantReply = true
if (!(await channel.request(request))) throw new Error('the command was refused')
await channel.send(stdin)
await channel.send(Buffer.alloc(0)) // the end of the input
const { exitStatus } = await closed
process.exitCode = exitStatus
session.dispose()
