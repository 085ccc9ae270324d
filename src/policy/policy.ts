export { type Decision, decide, type ScopedRules, type Subject } from './decide.ts'
export { concerns, type Explanation, explain } from './explain.ts'
export { type JudgedRisk, type RiskFacts, riskOf } from './risk.ts'
export { findHidden } from './uncertain.ts'
