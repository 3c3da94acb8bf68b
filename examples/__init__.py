"""Programs that show Trizone from the outside. They need boto3 and an endpoint."""
