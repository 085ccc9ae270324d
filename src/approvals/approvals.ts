export { type About, type Board, createBoard, type Said } from './board.ts'
export { createGrantBook, type GrantBook } from './grant-book.ts'
export { createPinReview } from './pin-review.ts'
export { createApprovalsRemover } from './remover.ts'
export {
  type ApprovalService,
  createApprovalServices,
  type GrantService,
  type WantedAnswer,
} from './service.ts'
