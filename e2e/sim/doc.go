// Package sim runs managers, agents and the scheduler of a whole cluster in one
// process on simulated time, with faults that a seed decides, and holds every
// state that it comes through against the invariants of the product.
//
// What is real: the services of the manager with their loops as they are
// (session, agents, scheduler, occupancy, policy, group, image, the event bus),
// ent, and PostgreSQL, without fsync. What is played: who leads (epochs are
// raised in the database as in the product), the tunnels to the agents, the
// agents themselves by their contract (agentpb), and events between managers.
// Every statement and every message asks the seed who goes next and what goes
// wrong. A transaction is one step: others come before it or after it, never
// between its statements, though any of these may be its last.
//
// A seed goes the same way each time: ids and timers follow from it, each process
// of the test runs one goroutine at a time, and those that come at once are put in
// an order. Only where a select finds several channels ready is it the runtime
// that decides; TestReplay counts the seeds that this leads elsewhere, about 3 in
// 100. One that fails is best played again a few times.
//
// The invariants. I1 no device holds more than it has, in the database at every
// commit and on the machines; what is given away there is free. I2 a kernel does
// not stay on two machines that are within reach. I3 everything settles after
// the last fault, what waits and fits starts, and ends when asked to. I4 what is
// over, or waits, holds nothing, in the database and on the machines. I5 no one
// has more than policies allow. I6 what was promised is there, what was refused
// is not, and a key makes one session. I8 a session goes along the state machine
// with a growing version, its history says so, and it is placed when its time
// has come and what it needs has succeeded. I9 who was replaced as leader
// changes no session, kernel or allocation. I10 every goroutine ends with its
// manager. I12 a gang has all its places or none. Two are held elsewhere, because
// what they are about is not played here: I7, bytes of folders that were
// acknowledged are there, by TestUploadsSurviveKillsAtRandom of storage and
// e2e/folders; I11, every change is in the audit log once, by the tests of graph,
// which writes it.
//
// What it found when the product was broken on purpose, by the first seed of 1,
// 2, 3… that failed:
//
//	the fence is not compared                     I9   seed 2
//	what is over keeps its allocations            I4   seed 1
//	any end of what is needed counts as success   I8   seed 5
//	only the first kernel of a gang is placed     I12  seed 2
//	the scheduler uses the slots of orphans       I1   seed 23
//
// It does not find what a second guard makes up for: orphans that the reconciler
// leaves are ended by the audit of occupancy, and a placement of a session that
// waits no more is refused by the statement that moves it. An end that does not
// wait for the containers (40 seeds) leaves orphans, which are spared and ended,
// and 160 seeds did without the unconditional pass over live sessions: retries,
// reports and new leaders look at them too.
package sim
