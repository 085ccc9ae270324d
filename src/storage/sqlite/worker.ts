import { parentPort, workerData } from 'node:worker_threads'
import { serveSqlite } from './thread.ts'

/** The thread that owns the database file. No other part of the gateway opens the file. */
if (parentPort) serveSqlite(parentPort, workerData)
