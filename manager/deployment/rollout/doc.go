// Package rollout decides what happens to the replicas of a deployment. It is the only place that does:
// scaling, the change to another revision, its judgement and the replacement of failed replicas are one
// decision, so they cannot disagree about a number.
//
// Plan is a function of what is stored and what is observed. It can be called at any time and by
// several managers after another; a decision that was not carried out, or only in part, is made again.
package rollout
