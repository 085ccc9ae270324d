export { createGrantCache, type GrantCache } from './grant-cache.ts'
export { createPinReview } from './pin-review.ts'
export { createApprovalsRemover } from './remover.ts'
export {
  type ApprovalService,
  createApprovalServices,
  type GrantService,
  type WantedAnswer,
} from './service.ts'
export { type About, type ApprovalStore, createApprovalStore, type GivenAnswer } from './store.ts'
