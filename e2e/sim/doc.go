// Package sim runs managers, agents and the scheduler of a whole cluster in one
// process on simulated time, with faults that a seed decides, and holds every
// state that it comes through against the invariants of the product.
//
// What is real: the services of the manager with their loops as they are
// (session, agents, scheduler, policy, image, the event bus), ent, and
// PostgreSQL. What is played: who leads (epochs are raised in the database as
// in the product), the tunnels to the agents, the agents themselves by their
// contract (agentpb), and events between managers. Every statement and every
// message asks the seed who goes next and what goes wrong.
package sim
