// Package diagnosis looks for faults of a running cluster: its stores, roles, certificates, machines, volumes and
// plugins. Each finding names the fault, what follows from it, and what an administrator can do. A check that cannot be made is a
// finding too. It only reads.
package diagnosis
