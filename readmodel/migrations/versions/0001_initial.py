def upgrade(): pass
