DROP INDEX "allocation_created_at";
DROP INDEX "kernel_agent_id";
DROP INDEX "kernel_domain_id";
DROP INDEX "kernel_owner_id";
DROP INDEX "kernel_project_id";
CREATE INDEX "kernel_agent_id" ON "kernels" ("agent_id") WHERE agent_id IS NOT NULL;
DROP INDEX "sessiongroup_owner_id";
DROP INDEX "session_owner_id";
DROP INDEX "session_owner_id_idempotency_key";
DROP INDEX "session_status";
CREATE UNIQUE INDEX "session_owner_id_idempotency_key" ON "sessions" ("owner_id", "idempotency_key") WHERE idempotency_key IS NOT NULL;
-- Room in each page for the next versions of its rows: a move writes no index entries then.
ALTER TABLE "sessions" SET (fillfactor = 70);
ALTER TABLE "kernels" SET (fillfactor = 70);
