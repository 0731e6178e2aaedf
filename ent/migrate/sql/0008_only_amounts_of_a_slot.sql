ALTER TABLE "agents" ADD COLUMN "allowed_counts" jsonb NOT NULL DEFAULT '{}';
ALTER TABLE "agents" ALTER COLUMN "allowed_counts" DROP DEFAULT;
ALTER TABLE "slot_types" ADD COLUMN "allowed_counts" jsonb NOT NULL DEFAULT '[]';
ALTER TABLE "slot_types" ALTER COLUMN "allowed_counts" DROP DEFAULT;
