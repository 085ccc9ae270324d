export { toDifference } from './difference.ts'
export { findForeignName, listToolNames, type ToolNames } from './foreign.ts'
export {
  type Drift,
  driftWords,
  type JudgedItems,
  type JudgedList,
  type JudgedTool,
  judgeTool,
  judgeTools,
  toDefinitionHash,
} from './judge.ts'
export { idKeyOf, type JudgedOffering, type JudgedOffers, judgeOffers, type Offer, type OfferKind } from './offers.ts'
export { findSteering } from './steering.ts'
