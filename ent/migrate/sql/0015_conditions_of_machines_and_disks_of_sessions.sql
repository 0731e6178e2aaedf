ALTER TABLE "agents" ADD COLUMN "conditions" jsonb NOT NULL DEFAULT '[]';
ALTER TABLE "agents" ALTER COLUMN "conditions" DROP DEFAULT;
ALTER TABLE "resource_policies" ADD COLUMN "max_disk_bytes" bigint NULL;
ALTER TABLE "sessions" ADD COLUMN "disk_bytes" bigint NOT NULL DEFAULT 0;
