// Package layers distributes the parts of images between agents: Server sends the parts that this agent has
// or is fetching, and Client opens parts at other agents, which the leading manager names. Both use mutual
// TLS with the agents' certificates. A caller needs a manager's ticket for the image, and shows with the
// image's own documents that the part belongs to it (docs/adr/0042-agents-send-each-other-images.md).
package layers
