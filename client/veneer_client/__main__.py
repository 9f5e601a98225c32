from veneer_client.command import veneer

veneer(prog_name="veneer")
