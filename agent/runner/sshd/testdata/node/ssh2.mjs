// ssh2 as a client: ssh2.mjs PORT KNOWN exec|pty COMMAND..., or put|get FROM TO.
import { readFileSync } from 'node:fs'
import ssh2 from 'ssh2'

const [port, known, verb, ...args] = process.argv.slice(2)
const key = readFileSync(known, 'utf8').trim().split(' ').at(-1)
const client = new ssh2.Client()

function end(err, code = 0) {
  if (err) console.error(err)
  process.exitCode = err ? 1 : code
  client.end()
}

client.on('error', end)
client.on('ready', () => {
  if (verb === 'put' || verb === 'get') {
    client.sftp((err, sftp) => (err ? end(err) : sftp[verb === 'put' ? 'fastPut' : 'fastGet'](args[0], args[1], (err) => end(err))))
    return
  }
  client.exec(args.join(' '), { pty: verb === 'pty' }, (err, channel) => {
    if (err) return end(err)
    let code
    channel.on('exit', (n) => (code = n))
    channel.on('close', () => end(undefined, code))
    channel.stderr.pipe(process.stderr)
    channel.pipe(process.stdout)
    if (verb === 'exec') process.stdin.pipe(channel)
  })
})
client.connect({
  host: '127.0.0.1', port: Number(port), username: 'u', authHandler: ['none'],
  hostVerifier: (k) => k.toString('base64') === key,
})
