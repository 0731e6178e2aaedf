ALTER TABLE "resource_groups" ADD COLUMN "allowed_networks" jsonb NOT NULL DEFAULT '[]';
ALTER TABLE "resource_groups" ALTER COLUMN "allowed_networks" DROP DEFAULT;
