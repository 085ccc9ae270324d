import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'

/** Listens where private addresses lead, and counts who comes. */
export async function startCanary(): Promise<AsyncDisposable & { readonly port: number; visits(): number }> {
  let visits = 0
  const count = (socket: Socket) => {
    visits += 1
    socket.on('error', () => undefined)
    socket.destroy()
  }
  const four = await listen(createServer(count), 0, '0.0.0.0')
  const six = await listen(createServer(count), four.port, '::1')
  return {
    port: four.port,
    visits: () => visits,
    async [Symbol.asyncDispose]() {
      four.server.close()
      six.server.close()
    },
  }
}

export async function listen(server: Server, port: number, host: string): Promise<{ server: Server; port: number }> {
  server.listen(port, host)
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('No port')
  return { server, port: address.port }
}

/** Hosts that lead to private places, in every form that they can be written in. */
export const privateHosts = [
  '127.0.0.1',
  '127.1',
  '127.255.255.254',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '0177.0.0.1',
  '0',
  '0.0.0.0',
  '[::1]',
  '::1',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[::7f00:1]',
  '[64:ff9b::7f00:1]',
  '[64:ff9b:1::7f00:1]',
  '[2002:7f00:1::]',
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.0.1',
  '100.64.0.1',
  '100.100.100.200',
  '169.254.169.254',
  '[::ffff:169.254.169.254]',
  '2852039166',
  '168.63.129.16',
  '192.0.0.192',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
  'fe80::1',
  '[fe80::1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  '[ff02::1]',
  'localhost',
  'LOCALHOST',
  'localhost.',
]
