import { generateKeyPairSync, sign } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const day = 86_400_000
const oids = {
  ecdsaWithSha256: '06082a8648ce3d040302',
  commonName: '0603550403',
  subjectAltName: '0603551d11',
}

/** A certificate for this machine, signed by itself, made here because not every machine has a program for it. */
export async function makeCertificate(folder: string): Promise<{ cert: string; key: string }> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const algorithm = sequence(hex(oids.ecdsaWithSha256))
  const name = sequence(der(0x31, sequence(hex(oids.commonName), der(0x0c, Buffer.from('localhost')))))
  const validity = sequence(time(Date.now() - day), time(Date.now() + day))
  const names = sequence(der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])))
  const extensions = der(0xa3, sequence(sequence(hex(oids.subjectAltName), der(0x04, names))))
  const version = der(0xa0, integer(2))
  const publicPart = publicKey.export({ type: 'spki', format: 'der' })
  const body = sequence(version, integer(1), algorithm, name, validity, name, publicPart, extensions)
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]))

  const cert = join(folder, 'cert.pem')
  const key = join(folder, 'key.pem')
  await writeFile(cert, toPem(sequence(body, algorithm, signature)))
  await writeFile(key, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  return { cert, key }
}

function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...contents: Buffer[]) => der(0x30, ...contents)
const integer = (value: number) => der(0x02, Buffer.from([value]))
const hex = (text: string) => Buffer.from(text, 'hex')

/** `YYMMDDHHMMSSZ` */
function time(at: number): Buffer {
  const digits = new Date(at).toISOString().replace(/\D/g, '').slice(2, 14)
  return der(0x17, Buffer.from(`${digits}Z`))
}

function toPem(bytes: Buffer): string {
  const lines = bytes.toString('base64').replace(/.{64}/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}
