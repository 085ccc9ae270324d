export { type About, type Board, createBoard, type Said } from './board.ts'
export { createGrantBook, type GrantBook } from './grant-book.ts'
export { createPinReview, type DecidedPin, type PinReview } from './pin-review.ts'
export { createApprovalsRemover } from './remover.ts'
