export { type About, type Board, createBoard, type Said } from './board.ts'
export { createGrantBook, type GrantBook } from './grant-book.ts'
